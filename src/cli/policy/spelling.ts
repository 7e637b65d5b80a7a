/** What a mistyped word was meant to be: the known word that is fewest edits away. */

/** Null where none is near: a third of its letters may be wrong, and at least two. Case and `-` for `_` cost nothing. */
export function nearestWord(text: string, known: readonly string[]): string | null {
  const given = plain(text);
  let nearest: string | null = null;
  let fewest = Math.max(2, Math.floor(given.length / 3)) + 1;
  for (const word of known) {
    // WHY first: a word a few letters long would be near to nearly everything.
    const edits = Math.abs(word.length - given.length) >= fewest ? fewest : countEdits(given, plain(word));
    if (edits < fewest && edits < word.length) [nearest, fewest] = [word, edits];
  }
  return nearest;
}

const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_ ]/g, '');

/** Letters put in, left out or changed (Levenshtein). */
function countEdits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1];
    for (let column = 1; column <= to.length; column++) {
      const changed = (row[column - 1] ?? 0) + (letter === to[column - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
