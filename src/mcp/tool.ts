/**
 * What a tool is, and how a call of one is answered: its data, checked against its schema, or a tool error with a code
 * and a sentence. What is neither a refusal nor the service's answer is a bug: it is logged by its kind, and the model
 * learns nothing of it.
 */

import {
  type CallToolResult,
  fromJsonSchema,
  type JsonSchemaType,
  type jsonSchemaValidator,
  type McpServer,
} from '@modelcontextprotocol/server';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { type Static, type TObject, type TProperties, Type } from 'typebox';
import { LeaseholdError } from '../client/errors.ts';
import { type CredentialPath, pathViolation } from '../core/path.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { ToolError } from './errors.ts';

/** Of a tool that changes nothing, and asks the vault alone. */
export const ONLY_READS = { isReadOnly: true, isDestructive: false, isOpenWorld: false, isIdempotent: true } as const;

export interface Tool<Input extends TObject = TObject, Output extends TObject = TObject> {
  readonly name: string;
  readonly title: string;
  /** For the model: what it does, what it needs, and what it never does. */
  readonly description: string;
  readonly input: Input;
  readonly output: Output;
  readonly isReadOnly: boolean;
  /** Whether something may be lost by it. */
  readonly isDestructive: boolean;
  /** Whether it reaches what is neither the service's nor this server's. */
  readonly isOpenWorld: boolean;
  /** Whether a second call with the same input changes nothing more. */
  readonly isIdempotent: boolean;
  /** @throws Refusal, LeaseholdError */
  call(input: Static<Input>, signal: AbortSignal): Promise<Static<Output>>;
}

/** A tool that is ready to be offered by any number of connections. */
export type RegisteredTool = (server: McpServer) => void;

/** Runs a call, or refuses it because there are too many. */
export type CallLimiter = <T>(work: () => Promise<T>) => Promise<T>;

export const strict = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });

/** A text that is one of a few. */
export const oneOf = <T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], description });

const ajv = new AjvJsonSchemaValidator();

/** The SDK's own, but a refused enumeration names what it may be: a model that reads it can correct itself. */
const VALIDATOR: jsonSchemaValidator = {
  getValidator<T>(schema: JsonSchemaType) {
    const validate = ajv.getValidator<T>(schema);
    const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, { enum?: unknown[] }>> };
    return (input) => {
      const checked = validate(input);
      if (checked.valid) return checked;
      const errorMessage = checked.errorMessage.replaceAll(
        /\bdata\/(\w+) must be equal to one of the allowed values/g,
        (_, name: string) => `${name} must be one of ${properties[name]?.enum?.join(', ')}`,
      );
      return { ...checked, errorMessage };
    };
  },
};

export function offer<Input extends TObject, Output extends TObject>(
  tool: Tool<Input, Output>,
  gate: CallLimiter,
  log: (line: string) => void,
): RegisteredTool {
  const { name, title, description, isReadOnly, isDestructive, isOpenWorld, isIdempotent } = tool;
  // Once, and not for each connection: a schema is compiled.
  const config = {
    title,
    description,
    inputSchema: fromJsonSchema<Static<Input>>({ ...tool.input }, VALIDATOR),
    outputSchema: fromJsonSchema<Static<Output>>({ ...tool.output }),
    annotations: {
      title,
      readOnlyHint: isReadOnly,
      destructiveHint: isDestructive,
      idempotentHint: isIdempotent,
      openWorldHint: isOpenWorld,
    },
  };
  return (server) => {
    server.registerTool(name, config, async (input, { mcpReq }): Promise<CallToolResult> => {
      try {
        const output = await gate(() => tool.call(input, mcpReq.signal));
        return { content: [{ type: 'text', text: JSON.stringify(output) }], structuredContent: { ...output } };
      } catch (error) {
        return { content: [{ type: 'text', text: sentenceOf(error, name, log) }], isError: true };
      }
    });
  };
}

/** To a model these are the same as a service that answers UNAVAILABLE: a call may succeed later. */
const NOT_REACHED: ReadonlySet<string> = new Set(['UNREACHABLE', 'TIMED_OUT']);

function sentenceOf(error: unknown, tool: string, log: (line: string) => void): string {
  if (error instanceof ToolError) return `${error.code}: ${error.message}`;
  if (error instanceof LeaseholdError) {
    const code = NOT_REACHED.has(error.code) ? 'UNAVAILABLE' : error.code;
    return `${code}: ${error.message}${adviceFor(error)}`;
  }
  // WHY: an error of Node may quote what it was given, a value among it.
  log(`${tool} failed: ${error instanceof Error ? error.name : typeof error}${errnoSuffix(error)}`);
  return 'INTERNAL_ERROR: the server failed; nothing more is told here';
}

function adviceFor({ code, retryAfterSeconds }: LeaseholdError): string {
  if (code === 'ACCESS_DENIED') return ' (explain_access tells why, and what an operator can do)';
  return retryAfterSeconds === null ? '' : ` (try again in ${retryAfterSeconds} s)`;
}

/** Checked here, before it becomes part of an address. @throws Refusal */
export function readPath(text: string, field = 'path'): CredentialPath {
  const rule = pathViolation(text);
  if (rule !== null) throw new ToolError('INVALID_REQUEST', `${field}: ${rule}`);
  return text as CredentialPath;
}
