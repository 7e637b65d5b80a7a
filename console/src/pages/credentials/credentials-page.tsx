/** Every credential, in one list or by directory, with its details. Directory, search and selection are in the URL. */
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { useSetParameters } from '../../components/filter-bar.tsx';
import { PageHeading } from '../../components/page-heading.tsx';
import { RoleButton } from '../../components/role-button.tsx';
import { CredentialList } from './credential-list.tsx';
import { CredentialPanel } from './credential-panel.tsx';
import { StoreDialog } from './store-dialog.tsx';

export function CredentialsPage() {
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const [isStoring, setStoring] = useState(false);
  const open = parameters.get('path');
  const prefix = parameters.get('prefix');
  return (
    <>
      <PageHeading title="Credentials">
        <RoleButton needs="editor" className="primary" onClick={() => setStoring(true)}>
          Store a credential
        </RoleButton>
      </PageHeading>
      <div className="split">
        <div className="list-column">
          <CredentialList
            prefix={prefix}
            open={open}
            onDirectory={(path) => setParameters({ prefix: path, q: null })}
            onCredential={(path) => setParameters({ path })}
          />
        </div>
        {open !== null && <CredentialPanel key={open} path={open} onClose={() => setParameters({ path: null })} />}
      </div>
      {isStoring && (
        <StoreDialog
          path={null}
          onClose={() => setStoring(false)}
          onStored={(path) => {
            setStoring(false);
            setParameters({ path });
          }}
        />
      )}
    </>
  );
}
