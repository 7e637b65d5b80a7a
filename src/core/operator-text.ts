/** Texts that operators read: characters that nobody sees are escaped, and a misspelt word gets a suggestion. */

/**
 * Control and format characters, lone surrogates and line separators; and what looks like nothing or like a blank:
 * ignorable code points, which include the fillers of Hangul, the empty pattern of Braille, and all blanks but ASCII's.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** `toEscape` receives one code point at a time. */
export function escapeInvisible(text: string, toEscape: (character: string) => string): string {
  return text.replaceAll(INVISIBLE, (character) => toEscape(character));
}

/** The largest share of a word's letters that a misspelling changes: `rm` is no misspelt `run`. */
const MAX_CHANGED_SHARE = 0.6;

/** The known word that differs by at most two letters, and has most of them in common; or null. */
export function nearest(word: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let least = 3;
  for (const each of known) {
    const changes = distance(word, each);
    const isAlike = changes < MAX_CHANGED_SHARE * Math.max(word.length, each.length);
    if (isAlike && changes < least) [best, least] = [each, changes];
  }
  return best;
}

/** Levenshtein distance; for short words. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
