/** Approvals: pending requests, past requests, and active grants. */
import { Link, useLocation, useSearchParams } from 'wouter';
import { PageHeading } from '../../components/page-heading.tsx';
import { ApprovalDetails } from './approval-details.tsx';
import { Grants, History } from './history.tsx';
import { Inbox } from './inbox.tsx';

const VIEWS = [
  { view: null, title: 'Pending' },
  { view: 'history', title: 'History' },
  { view: 'grants', title: 'Active grants' },
] as const;

export function ApprovalsPage() {
  const [location] = useLocation();
  const [parameters] = useSearchParams();
  // The router has already decoded the id.
  const [, , id = ''] = location.split('/');
  const current = parameters.get('view');
  return (
    <>
      <PageHeading title="Approvals" />
      <nav className="views" aria-label="Views of approvals">
        {VIEWS.map(({ view, title }) => (
          <Link
            key={title}
            href={view === null ? '/approvals' : `/approvals?view=${view}`}
            aria-current={id === '' && view === current ? 'page' : undefined}
          >
            {title}
          </Link>
        ))}
      </nav>
      {id !== '' ? <ApprovalDetails id={id} /> : <View view={current} />}
    </>
  );
}

function View({ view }: { readonly view: string | null }) {
  if (view === 'history') return <History />;
  if (view === 'grants') return <Grants />;
  return <Inbox />;
}
