/** Arrays as statement parameters, so that one statement handles all keys or rows of a batch. */

/** An array literal. SOURCE: postgresql.org/docs/current/arrays.html, "Array Input and Output Syntax". */
export function textArray(texts: Iterable<string>): string {
  const quoted = Array.from(texts, (text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`);
  return `{${quoted.join(',')}}`;
}

export function numberArray(numbers: Iterable<number>): string {
  return `{${[...numbers].join(',')}}`;
}
