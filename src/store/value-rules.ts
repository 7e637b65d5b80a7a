/**
 * The rules that check the values of a backup. A rule takes any JSON value and returns the rule that the value breaks,
 * in words that never repeat the value.
 */

import { decodeStrictBase64 } from '../crypto/primitives.ts';
import { ruleBroken } from '../engine/errors.ts';
import { isRecord } from '../engine/field.ts';

/** The rule that the value breaks, such as `must be a UUID in lower case`; null if it breaks none. */
export type ValueRule = (value: unknown) => string | null;

export type JsonFields = Readonly<Record<string, unknown>>;

export function nullable(rule: ValueRule): ValueRule {
  return (value) => (value === null ? null : rule(value));
}

/** A text that the parser accepts. */
export function parsed(parse: (text: string, field: string) => unknown): ValueRule {
  return (value) => {
    if (typeof value !== 'string') return 'must be a text';
    const message = ruleBroken(() => parse(value, 'value'));
    // WHY without the name of the field in a request: the caller names the column.
    return message === null ? null : message.slice(message.indexOf(': ') + 2);
  };
}

export function matching(grammar: RegExp, maxLength: number, rule: string): ValueRule {
  return (value) => (typeof value === 'string' && value.length <= maxLength && grammar.test(value) ? null : rule);
}

export function oneOf(words: readonly string[]): ValueRule {
  const rule = `must be one of ${words.join(', ')}`;
  return (value) => (typeof value === 'string' && words.includes(value) ? null : rule);
}

export function equalTo(expected: string | number): ValueRule {
  return (value) => (value === expected ? null : `must be ${expected}`);
}

/** Any text that both databases can store. */
export function anyText(maxLength: number): ValueRule {
  const rule = `must be at most ${maxLength} characters of well-formed Unicode without U+0000`;
  return (value) =>
    typeof value === 'string' && value.length <= maxLength && value.isWellFormed() && !value.includes('\u0000')
      ? null
      : rule;
}

export function integer(min: number, max: number): ValueRule {
  const rule = `must be an integer from ${min} to ${max}`;
  return (value) => (Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max ? null : rule);
}

/** A whole number, 0 or more. */
export const count = integer(0, Number.MAX_SAFE_INTEGER);

/** Strict base64: a text that re-encodes to itself. */
export function base64(minBytes: number, maxBytes: number): ValueRule {
  const size = minBytes === maxBytes ? `${minBytes}` : `${minBytes} to ${maxBytes}`;
  const rule = `must be the base64 of ${size} bytes`;
  const maxLength = 4 * Math.ceil(maxBytes / 3);
  return (value) => {
    const bytes = typeof value === 'string' && value.length <= maxLength ? decodeStrictBase64(value) : null;
    return bytes !== null && bytes.length >= minBytes && bytes.length <= maxBytes ? null : rule;
  };
}

export const isBoolean: ValueRule = (value) => (typeof value === 'boolean' ? null : 'must be true or false');

export function listOf(rule: ValueRule, min: number, max: number): ValueRule {
  return (value) => {
    if (!Array.isArray(value) || value.length < min || value.length > max) {
      return `must be a list of ${min} to ${max} items`;
    }
    for (const [index, item] of value.entries()) {
      const broken = rule(item);
      if (broken !== null) return `item ${index + 1} ${broken}`;
    }
    return null;
  };
}

export function objectOf(fields: Readonly<Record<string, ValueRule>>): ValueRule {
  const rules = Object.entries(fields);
  const shape = `must be an object with exactly the fields ${rules.map(([name]) => name).join(', ')}`;
  return (value) => {
    if (!isRecord(value) || !Object.keys(value).every((name) => Object.hasOwn(fields, name))) return shape;
    for (const [name, rule] of rules) {
      if (!Object.hasOwn(value, name)) return shape;
      const broken = rule(value[name]);
      if (broken !== null) return `${name} ${broken}`;
    }
    return null;
  };
}

export function mapOf(key: RegExp, rule: ValueRule, max: number): ValueRule {
  return (value) => {
    if (!isRecord(value) || Object.keys(value).length > max) return `must be an object with at most ${max} fields`;
    for (const [name, item] of Object.entries(value)) {
      if (!key.test(name)) return 'has a field with an unknown name';
      const broken = rule(item);
      if (broken !== null) return `${name} ${broken}`;
    }
    return null;
  };
}

/** An object whose field `kind` names its form. */
export function oneKindOf(kinds: Readonly<Record<string, ValueRule>>): ValueRule {
  const kind = oneOf(Object.keys(kinds));
  return (value) => {
    const word = isRecord(value) ? value['kind'] : null;
    const broken = kind(word);
    return broken === null ? (kinds[String(word)]?.(value) ?? null) : `kind ${broken}`;
  };
}

/** A value of either form. The message describes the second one. */
export function either(first: ValueRule, second: ValueRule): ValueRule {
  return (value) => (first(value) === null ? null : second(value));
}

/** A column that contains JSON as text. */
export function json(maxLength: number, rule: ValueRule): ValueRule {
  return (value) => {
    if (typeof value !== 'string' || value.length > maxLength) return `must be JSON of at most ${maxLength} characters`;
    let content: unknown;
    try {
      content = JSON.parse(value);
    } catch {
      return 'must be JSON';
    }
    return rule(content);
  };
}
