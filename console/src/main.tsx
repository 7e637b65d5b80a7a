/** The entry of the console: shows the first page as soon as the session is known. */
import { createRoot } from 'react-dom/client';
import { Console } from './console.tsx';
import { followOtherTabs, resumeSession } from './session/console-client.ts';
import { removeServiceWorkers } from './shell/foreign-workers.ts';
import { applyTheme } from './shell/preferences.ts';

applyTheme();
// ORDER: before the first request, which another program's worker could read.
if (await removeServiceWorkers()) {
  followOtherTabs();
  void resumeSession();
  const root = document.getElementById('console');
  if (root !== null) createRoot(root).render(<Console />);
}
