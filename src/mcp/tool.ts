/**
 * Tools and their calls. A call returns data, checked against the tool's schema, or a tool error with a code and a
 * sentence. Any exception other than a ToolError or a LeaseholdError is a bug: its kind is logged, and the model
 * receives no details.
 */

import {
  fromJsonSchema,
  type JsonSchemaType,
  type jsonSchemaValidator,
  type McpServer,
  type ToolAnnotations,
} from '@modelcontextprotocol/server';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { type Static, type TObject, type TProperties, Type } from 'typebox';
import { LeaseholdError } from '../client/errors.ts';
import { type CredentialPath, pathViolation } from '../core/path.ts';
import { errnoSuffix } from '../platform/errors.ts';
import type { ApprovalResults } from './approvals.ts';

export class ToolError extends Error {
  readonly code: 'INVALID_REQUEST' | 'NOT_ALLOWED' | 'BUSY' | 'STOPPING';

  constructor(code: ToolError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** An error of the vault with advice, as whole sentences. */
export class ErrorWithAdvice extends LeaseholdError {
  readonly advice: string;

  constructor({ code, message, ...details }: LeaseholdError, advice: string) {
    super(code, message, details);
    this.advice = advice;
  }
}

export const ONLY_READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

export interface Tool<Input extends TObject = TObject, Output extends TObject = TObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  readonly output: Output;
  readonly annotations: ToolAnnotations;
  /** @throws ToolError, LeaseholdError */
  call(input: Static<Input>, signal: AbortSignal): Promise<Static<Output>>;
}

export type RegisteredTool = (server: McpServer) => void;

export type CallLimiter = <T>(work: () => Promise<T>) => Promise<T>;

export const strict = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });

export const PATH = Type.String({
  maxLength: 512,
  description: 'Path of the credential, as list_credentials shows it.',
});

export const oneOf = <T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], description });

const ajv = new AjvJsonSchemaValidator();

/** The SDK's validator, with the allowed values in the message, so that a model can correct itself. */
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
  approvals: ApprovalResults,
  log: (line: string) => void,
): RegisteredTool {
  const { name, title, description, annotations } = tool;
  // Built once for all connections, because schemas are compiled.
  const config = {
    title,
    description,
    inputSchema: fromJsonSchema<Static<Input>>({ ...tool.input }, VALIDATOR),
    outputSchema: fromJsonSchema<Static<Output>>({ ...tool.output }),
    annotations: { title, ...annotations },
  };
  return (server) => {
    server.registerTool(name, config, async (input, context) => {
      try {
        const output = await gate(() => tool.call(input, context.mcpReq.signal));
        return { content: [{ type: 'text', text: JSON.stringify(output) }], structuredContent: { ...output } };
      } catch (error) {
        const result = error instanceof LeaseholdError ? approvals.resultOf(error, server, context) : null;
        if (result !== null) return result;
        return { content: [{ type: 'text', text: sentenceOf(error, name, log) }], isError: true };
      }
    });
  };
}

/** Reported as UNAVAILABLE, because a later call may succeed. */
const UNREACHED_CODES: ReadonlySet<string> = new Set(['UNREACHABLE', 'TIMED_OUT']);

function sentenceOf(error: unknown, tool: string, log: (line: string) => void): string {
  if (error instanceof ToolError) return `${error.code}: ${error.message}`;
  if (error instanceof LeaseholdError) {
    const code = UNREACHED_CODES.has(error.code) ? 'UNAVAILABLE' : error.code;
    return `${code}: ${error.message}${adviceFor(error)}`;
  }
  // WHY no message: an error of Node may quote a value.
  log(`${tool} failed: ${error instanceof Error ? error.name : typeof error}${errnoSuffix(error)}`);
  return 'INTERNAL_ERROR: the server failed; its log has the kind of the error';
}

function adviceFor(error: LeaseholdError): string {
  if (error instanceof ErrorWithAdvice) return ` ${error.advice}`;
  const { code, retryAfterSeconds } = error;
  if (code === 'ACCESS_DENIED') return ' (explain_access shows why, and what an operator can do)';
  return retryAfterSeconds === null ? '' : ` (try again in ${retryAfterSeconds} s)`;
}

/** Checks a path before it becomes part of a URL. @throws ToolError */
export function readPath(text: string): CredentialPath {
  const rule = pathViolation(text);
  if (rule !== null) throw new ToolError('INVALID_REQUEST', `path: ${rule}`);
  return text as CredentialPath;
}
