/** Validates external values against a shape. Errors have our own messages and name the field (docs/rules/errors.md). */
import type { z } from 'zod';
import { type FarthingError, invalid } from './error.ts';
import { explainInvalid } from './why-invalid.ts';

/** Returns the parsed value or throws a validation error. The value is a body, a path, a query or a row of a file. */
export function parseShape<Shape extends z.ZodType>(shape: Shape, value: unknown, part: string): z.output<Shape> {
  const result = shape.safeParse(value, { error: explainInvalid });
  if (!result.success) throw fromZod(result.error, part);
  return result.data;
}

/** Converts an error of Zod. The result names the field of the first fault; its details list all faults. */
export function fromZod(error: z.core.$ZodError, part = 'body'): FarthingError {
  const faults = error.issues
    .map(deepest)
    .map((issue) => ({ field: fieldPath(issue.path, part), message: issue.message }));
  const [first] = faults;
  return invalid(first?.field ?? part, first?.message ?? 'is not valid', faults.length > 1 ? { faults } : {});
}

/** Fault of the union branch that was parsed furthest: the branch that was most likely meant. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue;
  const inner = issue.errors.flat().map(deepest);
  const furthest = inner.sort((a, b) => b.path.length - a.path.length)[0];
  if (!furthest || furthest.path.length === 0) return inner.length === 1 && furthest ? at(issue, furthest) : issue;
  return at(issue, furthest);
}

function at(outer: z.core.$ZodIssue, inner: z.core.$ZodIssue): z.core.$ZodIssue {
  return { ...inner, path: [...outer.path, ...inner.path] } as z.core.$ZodIssue;
}

/** Example: `filters[0].key`. */
export function fieldPath(path: readonly PropertyKey[], part = 'body'): string {
  if (path.length === 0) return part;
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');
}
