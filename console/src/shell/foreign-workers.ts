/**
 * Removes service workers of the console's origin. The console registers none, so another program registered it, such
 * as one that had the port before. It could read and replace everything that the page loads.
 */

/** Resolves to whether the page may be shown. Otherwise it is loaded again, without the worker that controls it. */
export async function removeServiceWorkers(): Promise<boolean> {
  // Pages over plain HTTP under a name cannot have any.
  if (!('serviceWorker' in navigator)) return true;
  const { serviceWorker } = navigator;
  // A browser whose settings forbid storage rejects this call, and has no worker.
  const registrations = await serviceWorker.getRegistrations().catch(() => []);
  await Promise.all(registrations.map((each) => each.unregister()));
  if (registrations.length === 0 || serviceWorker.controller === null) return true;
  location.reload();
  return false;
}
