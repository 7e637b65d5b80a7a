/** Assertions about rejected input. */
import assert from 'node:assert/strict';
import { ApiError } from '../../src/engine/errors.ts';

/** The message of the INVALID_REQUEST for that input, which must name the field; anything else fails the test. */
export function refusal(field: string, parse: () => unknown, input?: unknown): string {
  try {
    parse();
  } catch (error) {
    assert.ok(error instanceof ApiError, `not a Fault: ${error}`);
    assert.equal(error.code, 'INVALID_REQUEST');
    // One item of a list is named as `field[2]`; a caller may leave out which.
    const [, named = '', item = ''] = /^(.*?)(\[\d+\])?: /.exec(error.message) ?? [];
    assert.ok(named === field || named + item === field, `does not name ${field}: ${error.message}`);
    return error.message;
  }
  assert.fail(`${field} was accepted: ${JSON.stringify(input)}`);
}
