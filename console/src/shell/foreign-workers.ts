/**
 * Removes service workers of the console's address. The console has none, so one that is there was registered by
 * another program, such as one that had the port before, and could read and replace everything that the page loads.
 */

/** Resolves to whether the page may be shown; otherwise it is loaded again, without the worker that controls it. */
export async function removeServiceWorkers(): Promise<boolean> {
  // Pages over plain HTTP at a name cannot have any.
  if (!('serviceWorker' in navigator)) return true;
  const { serviceWorker } = navigator;
  // A browser whose settings forbid storage rejects this, and has no worker.
  const registrations = await serviceWorker.getRegistrations().catch(() => []);
  await Promise.all(registrations.map((each) => each.unregister()));
  if (registrations.length === 0 || serviceWorker.controller === null) return true;
  location.reload();
  return false;
}
