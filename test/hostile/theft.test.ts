// An agent with a valid session and the right to use a credential tries to read its value: by what the upstream
// answers, by the request that it describes, and by the server's own routes. SOURCE: SECURITY.md, P11.

import { after } from 'node:test';
import './theft-exchanges.ts';
import './theft-routes.ts';
import { testAttempts } from './theft-fixture.ts';

await testAttempts({ after });
