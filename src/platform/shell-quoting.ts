/** Quotes text as one word of a POSIX shell. */

export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Quotes only when needed. */
export function quoteWord(text: string): string {
  // zsh expands a word that starts with = to the path of a program.
  return /^(?!=)[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : quoteForShell(text);
}
