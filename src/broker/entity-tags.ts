/**
 * Entity tags of representations whose bytes the redaction may change: they become weak, and what a caller sends back
 * becomes the upstream's own tag again. WHY not both forms in one condition: many servers compare the text of a single
 * tag. SOURCE: RFC 9110, 8.8.3.
 */

/** Marks a tag that was weak before, so that the two kinds stay apart without a memory of them. */
const WEAK_MARK = '--weak';
const CONDITIONS: ReadonlySet<string> = new Set(['if-match', 'if-none-match', 'if']);

/** A text that is no entity tag stays as it is. */
export function weaken(tag: string): string {
  return tag.replace(/^(W\/)?"([^"]*)"$/, (_, weak: string | undefined, text: string) =>
    weak === undefined ? `W/"${text}"` : `W/"${text}${WEAK_MARK}"`,
  );
}

/** The value of a request's header, with the tags that the upstream sent. `name` is in lower case. */
export function restoreTags(name: string, value: string): string {
  if (!CONDITIONS.has(name)) return value;
  return value.replaceAll(/W\/"([^"]*)"/g, (_, text: string) =>
    text.endsWith(WEAK_MARK) ? `W/"${text.slice(0, -WEAK_MARK.length)}"` : `"${text}"`,
  );
}
