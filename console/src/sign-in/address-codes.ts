/** One-time codes in the fragment of the address, which browsers send to no server. They are removed when read. */

function takeFragment(): string {
  const fragment = location.hash.slice(1);
  if (fragment !== '') history.replaceState(null, '', location.pathname + location.search);
  return fragment;
}

/** The code of `#handoff=CODE`, with which `leasehold console` opens the page. */
export function takeHandoffCode(): string | null {
  if (!location.hash.startsWith('#handoff=')) return null;
  return takeFragment().slice('handoff='.length);
}

/** The code of `/console/enrol#CODE`. */
export function takeEnrolmentCode(): string | null {
  const code = takeFragment();
  return code === '' ? null : code;
}
