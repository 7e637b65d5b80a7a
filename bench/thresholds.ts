// Figures held against what is required, and against those that were committed last.

import type { Bound, Figure } from './types.ts';

/** What is read of an earlier report; it may be of any age. */
export interface Earlier {
  /** Null where the report does not say. */
  readonly generator: string | null;
  readonly figures: readonly Pick<Figure, 'name' | 'value'>[];
}

export interface Judged extends Figure {
  /** Null where nothing is required. */
  readonly isMet: boolean | null;
  /** Of the report before; null where it had no such figure. */
  readonly last: number | null;
  readonly changePercent: number | null;
}

export function isMet(value: number, { kind, limit }: Bound): boolean {
  switch (kind) {
    case 'at least':
      return value >= limit;
    case 'at most':
      return value <= limit;
    case 'below':
      return value < limit;
  }
}

export function judge(figures: readonly Figure[], earlier: Earlier | null): Judged[] {
  const known = new Map(earlier?.figures.map(({ name, value }) => [name, value]));
  return figures.map((figure) => {
    const last = known.get(figure.name) ?? null;
    return {
      ...figure,
      isMet: figure.required === null ? null : isMet(figure.value, figure.required),
      last,
      changePercent: last === null || last === 0 ? null : (figure.value / last - 1) * 100,
    };
  });
}

/** What a reader of the changes must know; null where there is nothing. */
export function warnOfChange(generator: string, earlier: Earlier | null): string | null {
  if (earlier === null || earlier.generator === generator) return null;
  return `The load of the report before came from another generator (${earlier.generator ?? 'unknown'}): changes of full load say little.`;
}

/** Null for what is no report. */
export function readEarlier(text: string): Earlier | null {
  try {
    const report: unknown = JSON.parse(text);
    if (typeof report !== 'object' || report === null || !('figures' in report)) return null;
    if (!Array.isArray(report.figures)) return null;
    const generator = 'generator' in report && typeof report.generator === 'string' ? report.generator : null;
    return { generator, figures: report.figures.filter(isFigure) };
  } catch {
    return null;
  }
}

function isFigure(candidate: unknown): candidate is Figure {
  return (
    typeof candidate === 'object' &&
    candidate !== null &&
    'name' in candidate &&
    typeof candidate.name === 'string' &&
    'value' in candidate &&
    typeof candidate.value === 'number'
  );
}
