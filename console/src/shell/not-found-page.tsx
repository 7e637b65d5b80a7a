/** Shown for an address that no page has. */
import { EmptyState } from '../components/empty-state.tsx';
import { PageHeading } from '../components/page-heading.tsx';

export function NotFoundPage() {
  return (
    <>
      <PageHeading title="No such page" />
      <EmptyState title="Nothing is at this address">Choose a page in the navigation, or press / to search.</EmptyState>
    </>
  );
}
