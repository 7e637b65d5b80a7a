// An attacker with requests that are rejected late does not delay another agent. SOURCE: SECURITY.md, P8.
import { KIB, manyKeys, testFairness } from './fairness-scene.ts';

const largest = `{"path":"/","value":"${'\\u0061'.repeat(256 * KIB)}"}`;

testFairness('an agent, the largest value to no valid path', 'POST /api/v1/credentials', largest);
testFairness('an agent, 2 MiB at a route of the administrator', 'POST /api/v1/policies', manyKeys());
