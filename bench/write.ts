// Logins and stores at full load.

import { compare } from './compare.ts';
import { CONNECTIONS, loadFigures } from './retrieval.ts';
import type { Figure, Stage } from './types.ts';
import { removeVault, SMALL, startVault } from './vault.ts';

export async function measureWrites(stage: Stage): Promise<Figure[]> {
  const { plan, generator } = stage;
  const vault = await startVault(stage, SMALL);
  const job = { target: vault.target, connections: CONNECTIONS };
  const { adminToken } = vault.service;
  let first = SMALL.credentials;
  const logins = (amount: number) => generator.run({ kind: 'logins', ...job, amount });
  const stores = (amount: number) => {
    first += amount;
    return generator.run({ kind: 'stores', ...job, adminToken, first: first - amount, amount });
  };
  const sides = [
    { name: 'Logins', run: logins },
    { name: 'Stores', run: stores },
  ];
  const rounds = await compare(stage, sides, { warmUp: Math.ceil(plan.warmUpRequests / 4), seconds: plan.seconds });
  await removeVault(vault);
  return sides.flatMap(({ name }, index) => loadFigures(name, rounds[index] ?? []));
}
