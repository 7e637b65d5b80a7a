-- One role owns the schema and is used only for migrations; the nodes use another role, which owns nothing.
CREATE ROLE leasehold_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE leasehold_node LOGIN PASSWORD :'node_password';
CREATE DATABASE leasehold OWNER leasehold_owner TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE leasehold FROM PUBLIC;
GRANT CONNECT ON DATABASE leasehold TO leasehold_node;
