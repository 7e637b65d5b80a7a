/** Access of agents, with reasons: the matrix, the simulator, and the policies. The view is in the URL. */
import { useSearchParams } from 'wouter';
import { useSetParameters } from '../../components/filter-bar.tsx';
import { PageHeading } from '../../components/page-heading.tsx';
import { MatrixView } from './matrix-view.tsx';
import { PoliciesView } from './policies-view.tsx';
import { SimulatorView } from './simulator-view.tsx';

const VIEWS = [
  { name: 'matrix', title: 'Matrix', View: MatrixView },
  { name: 'simulator', title: 'Simulator', View: SimulatorView },
  { name: 'policies', title: 'Policies', View: PoliciesView },
] as const;

export function AccessPage() {
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  // A link to a policy, such as a search result, contains no view.
  const wanted = parameters.get('view') ?? (parameters.has('policy') ? 'policies' : 'matrix');
  const { name: shown, View } = VIEWS.find(({ name }) => name === wanted) ?? VIEWS[0];
  return (
    <>
      <PageHeading title="Access">
        <nav aria-label="Views of access" className="views">
          {VIEWS.map(({ name, title }) => (
            <button
              key={name}
              type="button"
              aria-current={name === shown ? 'page' : undefined}
              onClick={() => setParameters({ view: name, policy: null })}
            >
              {title}
            </button>
          ))}
        </nav>
      </PageHeading>
      <View />
    </>
  );
}
