/**
 * Indents JSON without any other change. WHY not by parsing and serialising: that drops repeated names and the digits
 * of large numbers, and the service that receives the request may read them.
 */
const MAX_INDENT = 20;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const OTHER = /[^\s"{}[\],:]+/y;

/** @throws SyntaxError for text that is not JSON */
export function indentJson(text: string): string {
  JSON.parse(text);
  let [out, depth] = ['', 0];
  const line = (): string => `\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`;
  for (let at = 0; at < text.length; ) {
    const character = text.charAt(at);
    const token = character === '"' ? STRING : OTHER;
    token.lastIndex = at;
    const [found = character] = token.exec(text) ?? [];
    at += found.length;
    if (found === '{' || found === '[') {
      depth += 1;
      out += found + (/^\s*[}\]]/.test(text.slice(at, at + 64)) ? '' : line());
    } else if (found === '}' || found === ']') {
      depth -= 1;
      out += (out.endsWith('{') || out.endsWith('[') ? '' : line()) + found;
    } else if (found === ',') out += found + line();
    else if (found === ':') out += ': ';
    else if (!/^\s$/.test(found)) out += found;
  }
  return out;
}
