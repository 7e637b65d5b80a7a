/** One-time codes in the fragment of the URL, which browsers send to no server. */

/** The code of `#handoff=CODE`, with which `leasehold console` opens the page. */
export function readHandoffCode(): string | null {
  return location.hash.startsWith('#handoff=') ? location.hash.slice('#handoff='.length) : null;
}

/** The code of `/console/enrol#CODE`. */
export function readEnrolmentCode(): string | null {
  return location.hash === '' ? null : location.hash.slice(1);
}

/**
 * Removes the code from the URL. Called once the page is shown. WHY not when the code is read: React may begin to
 * render a page, give up and begin again, and the code would be lost.
 */
export function removeFragment(): void {
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
}
