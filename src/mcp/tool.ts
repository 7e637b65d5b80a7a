/**
 * Tools and their calls. A call returns data, checked against the schema of the tool, or a tool error with a code and a
 * sentence. Any exception other than a ToolError or a LeaseholdError is a bug: its kind is logged, and the model
 * receives no details. A call that waits for an approval, or ends without one, has a result of its own. A client that
 * can open links is asked to open the page of the approval for its user; for other clients the result contains the
 * link. Only an operator who has signed in can answer there.
 */
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  type JsonSchemaType,
  type jsonSchemaValidator,
  type McpServer,
  type ServerContext,
  type ToolAnnotations,
} from '@modelcontextprotocol/server';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { type Static, type TObject, type TProperties, Type } from 'typebox';
import { LeaseholdError } from '../client/errors.ts';
import { UUID } from '../core/names.ts';
import { type CredentialPath, pathViolation } from '../core/path.ts';
import { errnoSuffix } from '../platform/errors.ts';

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
  return 'INTERNAL_ERROR: the MCP server failed; its standard error shows the kind of the error';
}

function adviceFor(error: LeaseholdError): string {
  if (error instanceof ErrorWithAdvice) return ` ${error.advice}`;
  const { code, retryAfterSeconds } = error;
  if (code === 'ACCESS_DENIED') return ' (explain_access shows the reason, and how an operator can grant access)';
  return retryAfterSeconds === null ? '' : ` (try again in ${retryAfterSeconds} s)`;
}

/** Checks a path before it becomes part of a URL. @throws ToolError */
export function readPath(text: string): CredentialPath {
  const rule = pathViolation(text);
  if (rule !== null) throw new ToolError('INVALID_REQUEST', `path: ${rule}`);
  return text as CredentialPath;
}

/** The outcomes by the code of the error. A given approval needs none, because the call returns its result. */
const OUTCOMES: ReadonlyMap<string, { readonly outcome: string; readonly is_refusal: boolean }> = new Map([
  ['APPROVAL_PENDING', { outcome: 'pending', is_refusal: false }],
  ['APPROVAL_DENIED', { outcome: 'denied', is_refusal: true }],
  ['APPROVAL_TIMED_OUT', { outcome: 'timed_out', is_refusal: false }],
  ['APPROVAL_WITHDRAWN', { outcome: 'withdrawn', is_refusal: false }],
  ['NO_APPROVER', { outcome: 'no_approver', is_refusal: false }],
]);

/** The abilities of the client, which each request or the connection declares, depending on the protocol revision. */
interface Declared {
  readonly [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities;
}

const MAX_REMEMBERED = 1000;
const REQUEST =
  'A request of this agent waits until an operator approves it. Open the page to read the exact request and to approve or deny it; it asks for an operator’s sign-in.';

export class ApprovalResults {
  readonly #serverUrl: string | null;
  /** The approvals that the user was already asked to open, so that none is offered twice. */
  readonly #asked = new Set<string>();

  /** `serverUrl` is null if browsers cannot reach it. */
  constructor(serverUrl: string | null) {
    this.#serverUrl = serverUrl;
  }

  /** Null for an error that is not about an approval. */
  resultOf(
    error: LeaseholdError,
    server: McpServer,
    { mcpReq }: Pick<ServerContext, 'mcpReq'>,
  ): CallToolResult | InputRequiredResult | null {
    const outcome = OUTCOMES.get(error.code);
    if (outcome === undefined) return null;
    const { code, message } = error;
    // WHY checked: it becomes part of a link.
    const id = error.approvalId !== null && UUID.test(error.approvalId) ? error.approvalId : null;
    const link = id === null || this.#serverUrl === null ? null : `${this.#serverUrl}/console/approvals/${id}`;
    if (code === 'APPROVAL_PENDING' && id !== null && link !== null && !this.#asked.has(id)) {
      const envelope: Declared = mcpReq.envelope ?? {};
      const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities();
      if (capabilities?.elicitation?.url !== undefined) {
        this.#remember(id);
        return inputRequired({
          inputRequests: { approval: inputRequired.elicitUrl({ message: REQUEST, url: link }) },
        });
      }
    }
    const advice = code === 'APPROVAL_PENDING' ? ` ${pendingAdvice(id, link)}` : '';
    return {
      content: [{ type: 'text', text: `${code}: ${message}${advice}` }],
      structuredContent: { code, ...outcome, approval_id: id, link },
      isError: true,
    };
  }

  #remember(id: string): void {
    if (this.#asked.size >= MAX_REMEMBERED) this.#asked.clear();
    this.#asked.add(id);
  }
}

function pendingAdvice(id: string | null, link: string | null): string {
  const at = link === null ? '' : `at ${link} or `;
  const how = id === null ? '' : ` An operator can answer ${at}with: leasehold approve ${id}.`;
  return `Nothing was sent. Call this tool again with the same arguments to continue waiting.${how}`;
}
