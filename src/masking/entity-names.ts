/**
 * Names of characters in HTML and XML, for all of ASCII and Latin-1. A name is also recognised without its semicolon.
 * SOURCE: the HTML standard, "Named character references"
 */

const ASCII: readonly (readonly [names: string, character: string])[] = [
  ['Tab', '\t'],
  ['NewLine', '\n'],
  ['excl', '!'],
  ['quot QUOT', '"'],
  ['num', '#'],
  ['dollar', '$'],
  ['percnt', '%'],
  ['amp AMP', '&'],
  ['apos', "'"],
  ['lpar', '('],
  ['rpar', ')'],
  ['ast midast', '*'],
  ['plus', '+'],
  ['comma', ','],
  ['hyphen dash', '-'],
  ['period', '.'],
  ['sol', '/'],
  ['colon', ':'],
  ['semi', ';'],
  ['lt LT', '<'],
  ['equals', '='],
  ['gt GT', '>'],
  ['quest', '?'],
  ['commat', '@'],
  ['lsqb lbrack', '['],
  ['bsol', '\\'],
  ['rsqb rbrack', ']'],
  ['Hat', '^'],
  ['lowbar UnderBar', '_'],
  ['grave DiacriticalGrave', '`'],
  ['lcub lbrace', '{'],
  ['verbar vert VerticalLine', '|'],
  ['rcub rbrace', '}'],
  ['tilde', '~'],
];
const LATIN_START = 0xa0;
const LATIN =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'.split(
    ' ',
  );

interface Node {
  /** The character whose name ends here; null if no name does. */
  codePoint: number | null;
  readonly children: Map<number, number>;
}

const nodes: Node[] = [{ codePoint: null, children: new Map() }];

for (const [names, character] of ASCII)
  for (const name of names.split(' ')) addName(name, character.codePointAt(0) ?? 0);
for (const [at, name] of LATIN.entries()) addName(name, LATIN_START + at);

function addName(name: string, codePoint: number): void {
  let at = 0;
  for (const unit of Buffer.from(name)) {
    const next = nodes[at]?.children.get(unit) ?? nodes.push({ codePoint: null, children: new Map() }) - 1;
    nodes[at]?.children.set(unit, next);
    at = next;
  }
  const node = nodes[at];
  if (node !== undefined) node.codePoint = codePoint;
}

/** The node after a character of a name; 0 if no name continues in this way. Node 0 is the start. */
export function nextInName(node: number, unit: number): number {
  return nodes[node]?.children.get(unit) ?? 0;
}

/** The character whose name ends at the node, or -1. */
export function characterNamed(node: number): number {
  return nodes[node]?.codePoint ?? -1;
}
