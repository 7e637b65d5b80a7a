/** The mutants of a source file: small faults, each of which some test should notice. */
import { parseSync } from 'oxc-parser';

export interface Mutant {
  readonly file: string;
  readonly line: number;
  /** The replaced range as offsets into the text, and the replacement. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  readonly original: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const SWAPPED: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '&&': '||',
  '||': '&&',
  '&': '|',
  '|': '&',
  '+=': '-=',
  '-=': '+=',
};
const SWAPPED_METHODS: Readonly<Record<string, string>> = { some: 'every', every: 'some', min: 'max', max: 'min' };
/** Syntax nodes of types, which do not run. */
const IS_TYPE = /^TS(?!AsExpression|SatisfiesExpression|NonNullExpression)|^Import|^ExportAll/;

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value;

/** Sorted by position in the text. */
export function findMutants(file: string, text: string): Mutant[] {
  const found: Mutant[] = [];
  const add = (start: number, end: number, replacement: string): void => {
    const line = text.slice(0, start).split('\n').length;
    found.push({ file, line, start, end, replacement, original: text.slice(start, end) });
  };
  const visit = (node: Node): void => {
    if (IS_TYPE.test(node.type)) return;
    mutate(node, text, add);
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child);
    }
  };
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`);
  visit(program as unknown as Node);
  return found.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

function mutate(node: Node, text: string, add: (start: number, end: number, replacement: string) => void): void {
  const { type, start, end, left, right, operator, test, argument, property, expression, value } = node;
  if (typeof operator === 'string' && isNode(left) && isNode(right) && Object.hasOwn(SWAPPED, operator)) {
    const at = text.indexOf(operator, left.end);
    add(at, at + operator.length, SWAPPED[operator] ?? '');
  }
  if ((type === 'IfStatement' || type === 'ConditionalExpression') && isNode(test)) {
    add(test.start, test.end, 'true');
    add(test.start, test.end, 'false');
  }
  if (type === 'UnaryExpression' && operator === '!' && isNode(argument)) add(start, argument.start, '');
  if (type === 'Literal' && typeof value === 'boolean') add(start, end, String(!value));
  if (type === 'Literal' && typeof value === 'number') add(start, end, String(value + 1));
  if (type === 'ExpressionStatement' && isNode(expression) && /^(?:Call|Await|Assignment)/.test(expression.type))
    add(start, end, ';');
  if (type === 'ThrowStatement') add(start, end, ';');
  if (type === 'MemberExpression' && isNode(property)) {
    const name = text.slice(property.start, property.end);
    if (Object.hasOwn(SWAPPED_METHODS, name)) add(property.start, property.end, SWAPPED_METHODS[name] ?? '');
  }
}
