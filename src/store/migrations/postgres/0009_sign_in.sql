-- An operator may have passkeys or an identity at a provider, and no key.
ALTER TABLE operators ALTER COLUMN public_key DROP NOT NULL;
ALTER TABLE operators ADD COLUMN passkeys text;
ALTER TABLE operators ADD COLUMN identity text;
