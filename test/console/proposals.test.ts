// Proposals for a denied access, compared with an independent decision over random policies.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { proposalsFor } from '../../console/src/pages/access/proposals.ts';
import { grantDraft } from '../../src/core/access-explanation.ts';
import type { Policy } from '../../src/core/policy.ts';
import { policySets, QUESTIONS } from '../cli/random-policies.ts';
import { decidePlainly } from '../core/reference.ts';
import { runs } from '../kit/property.ts';

const isAllowed = (policies: readonly Policy[], { agent, action, path }: (typeof QUESTIONS)[number]): boolean =>
  decidePlainly(policies, agent, action, path) !== null;

test('every proposal allows what was denied, and the first allows nothing else', () => {
  fc.assert(
    fc.property(policySets, (drafts) => {
      const policies = drafts.map((draft): Policy => ({ ...draft, createdAt: 0 }));
      const names = new Set(drafts.map(({ name }) => name));
      const allowed = QUESTIONS.map((question) => isAllowed(policies, question));
      for (const [index, question] of QUESTIONS.entries()) {
        if (allowed[index] === true) continue;
        const proposals = proposalsFor(question, grantDraft(question, names), policies);
        assert.equal(proposals[0]?.alsoGrants, null);
        for (const { before, after, alsoGrants } of proposals) {
          assert.equal(names.has(after.name), before !== null);
          const changed = [...policies.filter((policy) => policy !== before), { ...after, createdAt: 0 }];
          const gained = QUESTIONS.filter((each, at) => allowed[at] === false && isAllowed(changed, each));
          assert.ok(gained.includes(question));
          if (alsoGrants === null) assert.deepEqual(gained, [question]);
          for (const { agent } of gained) assert.equal(agent, question.agent);
        }
      }
    }),
    runs(15, 300),
  );
});
