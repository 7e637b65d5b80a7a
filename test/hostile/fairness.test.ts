// An attacker with the cheapest large request does not delay another agent. SOURCE: SECURITY.md, P8.
import { manyKeys, testFairness } from './fairness-scene.ts';

testFairness('an agent, 2 MiB of keys', 'POST /api/v1/leases/revoke', manyKeys());
