// Which credentials a load asks for, and as whom: at random, and so many that few come twice, as long as that is cheap.

import type { FullJob, Target } from './loads.ts';
import { benchPath, benchToken, randomBelow } from './targets.ts';

const MOST_PICKED = 32_000;

type Size = Pick<FullJob, 'amount' | 'connections'>;

interface Retrieval {
  readonly path: string;
  readonly token: string;
}

/** As many for each connection, and one at least. */
export function pickRetrievals({ credentials, agents }: Target, { amount, connections }: Size): Retrieval[] {
  const each = Math.ceil(Math.min(amount, MOST_PICKED) / connections);
  const tokens = Array.from({ length: agents }, (_, index) => benchToken(index));
  return Array.from({ length: each * connections }, () => ({
    path: `/api/v1/credentials/${benchPath(randomBelow(credentials))}`,
    token: tokens[randomBelow(agents)] ?? '',
  }));
}
