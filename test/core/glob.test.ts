// Globs of the audit filter. SOURCE: docs/api.md, "The audit log": `*` matches any run of characters, `?` matches one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { globMatches } from '../../src/core/glob.ts';
import { assertGrowth } from '../kit/growth.ts';
import { runs } from '../kit/property.ts';

const ROWS: readonly [glob: string, text: string, isMatch: boolean][] = [
  ['', '', true],
  ['', 'a', false],
  ['*', '', true],
  ['*', 'prod/db/x', true],
  ['**', 'a', true],
  ['?', '', false],
  ['?', '/', true],
  ['?', '🔑', true],
  ['??', '🔑', false],
  ['*??', 'a🔑', true],
  ['*??', '🔑', false],
  ['?b', '🔑b', true],
  ['?', 'ab', false],
  ['prod/*', 'prod/', true],
  ['prod/*', 'prod/db/x', true],
  ['prod/*', 'prod', false],
  ['prod/*', 'Prod/db', false],
  ['*/password', 'prod/db/password', true],
  ['*/password', 'prod/db/password2', false],
  ['prod/*/password', 'prod/a/b/password', true],
  ['prod/*/password', 'prod/password', false],
  ['prod/??/x', 'prod/db/x', true],
  ['prod/??/x', 'prod/d/x', false],
  ['policy:*', 'policy:a', true],
  ['*a*b', 'aab', true],
  ['*a*b', 'aabc', false],
  ['a?*', 'a', false],
  ['a.b', 'axb', false],
  ['[ab]', 'a', false],
  ['a+', 'aa', false],
  ['%', 'anything', false],
  ['_', 'a', false],
];

for (const [glob, text, isMatch] of ROWS) {
  test(`"${glob}" ${isMatch ? 'fits' : 'does not fit'} "${text}"`, () => {
    assert.equal(globMatches(glob, text), isMatch);
  });
}

/** The definition: the rest of the glob is compared with every suffix of the text. */
function fitsPlainly(glob: string, text: string): boolean {
  if (glob === '') return text === '';
  const rest = glob.slice(1);
  if (glob.startsWith('*')) {
    for (let taken = 0; taken <= text.length; taken++) if (fitsPlainly(rest, text.slice(taken))) return true;
    return false;
  }
  return text !== '' && (glob.startsWith('?') || glob[0] === text[0]) && fitsPlainly(rest, text.slice(1));
}

test('matching agrees with the definition for every glob and text', () => {
  const globs = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?', '/'), maxLength: 8 });
  const texts = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*', '?'), maxLength: 9 });
  fc.assert(
    fc.property(globs, texts, (glob, text) => {
      assert.equal(globMatches(glob, text), fitsPlainly(glob, text));
    }),
    runs(2000),
  );
});

test('a text matches the glob in which * replaces some of its substrings and ? some characters', () => {
  const parts = fc.array(fc.tuple(fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 4 }), fc.nat(3)));
  fc.assert(
    fc.property(parts, (pieces) => {
      const text = pieces.map(([piece]) => piece).join('');
      const glob = pieces
        .map(([piece, how]) => (how === 0 ? '*' : how === 1 ? '?'.repeat(piece.length) : piece))
        .join('');
      assert.ok(globMatches(glob, text), `${glob} and ${text}`);
    }),
    runs(1000),
  );
});

test('hostile globs end fast: backtracking over each star would never end', () => {
  for (const [before, part, behind] of [
    ['', '*a', 'b'],
    ['', '**', 'b'],
    ['', 'a*', '?b'],
    ['', '*?', 'b'],
  ] as const) {
    const match = (count: number) => {
      assert.equal(globMatches(`${before}${part.repeat(count)}${behind}`, 'a'.repeat(2 * count)), false);
    };
    assertGrowth(match, { small: 75, times: 4, limit: 16 * 4, what: part });
  }
});
