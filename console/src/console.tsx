/** The whole console: data, routing, and the choice between signing in and the pages. */
import { QueryClientProvider } from '@tanstack/react-query';
import { Component, lazy, type ReactNode, Suspense } from 'react';
import { Redirect, Route, Router, Switch, useLocation } from 'wouter';
import { LiveRegion } from './components/live-region.tsx';
import { PageHeading } from './components/page-heading.tsx';
import { EmptyState, ErrorPanel, Loading } from './components/states.tsx';
import { PAGES } from './pages.ts';
import { retrySession, session, useSession } from './session/console-client.ts';
import { queries } from './session/queries.ts';
import { Layout } from './shell/layout.tsx';
import { StatusNotice } from './shell/status-notice.tsx';

const SignInPage = lazy(async () => ({ default: (await import('./sign-in/sign-in-page.tsx')).SignInPage }));
const CallbackPage = lazy(async () => ({ default: (await import('./sign-in/oidc.tsx')).CallbackPage }));
const EnrolPage = lazy(async () => ({ default: (await import('./sign-in/enrol-page.tsx')).EnrolPage }));

export function Console() {
  return (
    <QueryClientProvider client={queries}>
      <Router base="/console">
        <Suspense fallback={<Loading what="the console" />}>
          <Switch>
            <Route path="/callback" component={CallbackPage} />
            <Route path="/enrol" component={EnrolPage} />
            <Route>
              <SignedInPages />
            </Route>
          </Switch>
        </Suspense>
      </Router>
      <LiveRegion />
    </QueryClientProvider>
  );
}

function UnknownSession({ error }: { readonly error: unknown }) {
  return (
    <main id="main" className="sign-in">
      <PageHeading title="Your session could not be checked" />
      <StatusNotice />
      <ErrorPanel error={error} onRetry={() => void retrySession()} />
      <button type="button" onClick={() => session.signOut(null)}>
        Sign in again
      </button>
    </main>
  );
}

function SignedInPages() {
  const state = useSession();
  if (state.kind === 'checking') return <Loading what="your session" />;
  if (state.kind === 'unknown') return <UnknownSession error={state.error} />;
  if (state.kind === 'signed-out') return <SignInPage />;
  return (
    <Layout identity={state.identity}>
      <PageBoundary>
        <Suspense fallback={<Loading what="the page" />}>
          <Switch>
            <Route path="/">
              <Redirect to={PAGES[0].path} replace />
            </Route>
            {PAGES.map(({ path, Page }) => (
              <Route key={path} path={`${path}/*?`} component={Page} />
            ))}
            <Route component={NotFoundPage} />
          </Switch>
        </Suspense>
      </PageBoundary>
    </Layout>
  );
}

function NotFoundPage() {
  return (
    <>
      <PageHeading title="Page not found" />
      <EmptyState title="This page does not exist">Choose a page in the navigation, or press / to search.</EmptyState>
    </>
  );
}

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

function PageBoundary({ children }: { readonly children: ReactNode }) {
  const [location] = useLocation();
  return <Boundary key={location.split('/')[1]}>{children}</Boundary>;
}
