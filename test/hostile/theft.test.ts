// An agent with a valid session and the right to use a credential tries to read its value: through the upstream's
// responses, through its own request, and through the server's own routes. SOURCE: SECURITY.md, P11.

import { after } from 'node:test';
import './theft-exchanges.ts';
import './theft-routes.ts';
import { testAttempts } from './theft-fixture.ts';

await testAttempts({ after });
