/** Shows what failed while a page was drawn, in place of an empty window. Leaving the page clears it. */
import { Component, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { ErrorPanel } from '../components/error-panel.tsx';

interface State {
  readonly error: unknown;
}

class Boundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <ErrorPanel error={error} onRetry={() => location.reload()} />;
  }
}

export function PageBoundary({ children }: { readonly children: ReactNode }) {
  const [location] = useLocation();
  return <Boundary key={location.split('/')[1]}>{children}</Boundary>;
}
