/** The first page: current activity, pending approvals, and findings that need attention. */
import { PageHeading } from '../../components/page-heading.tsx';
import { FirstSteps } from './first-steps.tsx';
import { ActiveLeases, Happening } from './happening.tsx';
import { Plots } from './plots.tsx';
import { NeedsAttention, WaitingApprovals } from './waiting.tsx';

export function NowPage() {
  return (
    <>
      <PageHeading title="Now" />
      <FirstSteps />
      <div className="now">
        <WaitingApprovals />
        <NeedsAttention />
        <Plots />
        <Happening />
        <ActiveLeases />
      </div>
    </>
  );
}
