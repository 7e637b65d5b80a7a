/** The errors that a model gets, with a code and a sentence that never contain a value. */
import { LeaseholdError } from '../client/errors.ts';

/** Thrown when this server rejects a call. */
export class ToolError extends Error {
  readonly code: 'INVALID_REQUEST' | 'NOT_ALLOWED' | 'NOT_FOUND' | 'NAME_TAKEN' | 'BUSY' | 'STOPPING' | 'FAILED';

  constructor(code: ToolError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** An error of the service with what would help, as whole sentences. */
export class ErrorWithAdvice extends LeaseholdError {
  readonly advice: string;

  constructor({ code, message, ...details }: LeaseholdError, advice: string) {
    super(code, message, details);
    this.advice = advice;
  }
}
