// How often the log's page reads facets that do not count every entry.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ReadFacets, withInterval } from '../../console/src/pages/log/facet-interval.ts';

test('facets are read again each second while more are counted, and ever more rarely while not', () => {
  let before: ReadFacets | undefined;
  const readAgain = (counted: number, complete = false): number | false => {
    before = withInterval({ counted, complete, event_type: [], result: [], agent_name: [] }, before);
    return before.againMs;
  };
  assert.deepEqual(
    [10, 20, 20, 20, 19].map((counted) => readAgain(counted)),
    [1000, 1000, 2000, 4000, 8000],
  );
  assert.deepEqual(
    [30, 30].map((counted) => readAgain(counted)),
    [1000, 2000],
  );
  const many = Array.from({ length: 100 }, () => Number(readAgain(30)));
  assert.equal(Math.max(...many), 60_000);
  assert.equal(readAgain(40, true), false);
  assert.equal(readAgain(0), 1000);
});
