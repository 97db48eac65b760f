/**
 * Runs every worked example that has an operation; which file they come from stands in the title. Those of `own/` are in
 * the repository, so that a clone by itself tests every operation of the table.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { ZodError } from 'zod';
import { FarthingError } from '../../core/foundation/error.ts';
import { differences, type Result } from './compare.ts';
import { endWorld } from './example-world.ts';
import { NOT_YET, OPERATIONS, type Operation } from './operations.ts';
import { type Example, parseExamples } from './parse-examples.ts';

const OWN_DIRECTORY = fileURLToPath(new URL('own/', import.meta.url));
const SHARED_FILE = fileURLToPath(new URL('../../../shared/behaviour/examples-public.md', import.meta.url));

const ownFiles = readdirSync(OWN_DIRECTORY).map((name) => join(OWN_DIRECTORY, name));
const otherFile = process.env.EXAMPLES_FILE ?? (existsSync(SHARED_FILE) ? SHARED_FILE : undefined);

// All files share one world: each example has customers, meters and plans of its own.
describe('worked examples', () => {
  after(endWorld);
  for (const file of ownFiles) runFile(file);
  testOwnFilesTogether(ownFiles.flatMap(examplesOf));
  if (otherFile !== undefined) runFile(otherFile);
});

function runFile(file: string): void {
  const examples = examplesOf(file);
  describe(`of ${basename(file)}`, () => {
    it('has examples, and each operation is mapped or listed as not yet mapped', () => {
      expect(examples).not.to.be.empty;
      const missing = examples.filter(({ area, op, id }) => !(op in OPERATIONS) && !isNotYet(area, op, id));
      expect(missing.map(({ id, op }) => `${id}: ${op}`)).to.deep.equal([]);
    });
    if (file === SHARED_FILE) itListsOnlyWhatIsMissing(examples);
    for (const example of examples) {
      const operation = OPERATIONS[example.op];
      if (operation === undefined || isNotYet(example.area, example.op, example.id)) continue;
      it(`${example.id}: ${example.op}`, async () => {
        expect(example.expected, 'an example must expect something').not.to.be.empty;
        const result = await answer(operation, example);
        if (file === otherFile && isStateRefusal(example, result)) return;
        expect(differences(example.expected, result, example.tolerance)).to.deep.equal([]);
      });
    }
  });
}

/**
 * The examples from elsewhere call each refusal validation_error. The interface tells apart those by the state of the record: to
 * cancel, change, modify or void it again does not help (docs/rules/errors.md, "Codes").
 */
const OPERATIONS_ON_STATES = [
  'subscription.cancel',
  'subscription.change_plan',
  'subscription.modify',
  'invoice.void',
  'credit_note.void',
];

function isStateRefusal({ op, expected }: Example, { error_code, ...others }: Result): boolean {
  if (!OPERATIONS_ON_STATES.includes(op)) return false;
  const told = { ...others, error_code: 'validation_error' };
  return error_code === 'invalid_operation' && differences(expected, told, undefined).length === 0;
}

function examplesOf(file: string): Example[] {
  return parseExamples(readFileSync(file, 'utf8'));
}

function testOwnFilesTogether(examples: readonly Example[]): void {
  describe('of our own', () => {
    it('are there for every operation, so that none is tested only where another file of examples is', () => {
      const asked = new Set(examples.map(({ op }) => op));
      expect(Object.keys(OPERATIONS).filter((op) => !asked.has(op))).to.deep.equal([]);
    });

    it('have ids of their own, so that a failure names one row', () => {
      const ids = examples.map(({ id }) => id);
      expect(ids.filter((id, index) => id === '' || ids.indexOf(id) !== index)).to.deep.equal([]);
    });
  });
}

function itListsOnlyWhatIsMissing(examples: readonly Example[]): void {
  it('NOT_YET names no area and operation that the file does not have', () => {
    const pairs = new Set(examples.flatMap(({ area, op, id }) => [`${area}: ${op}`, `${area}: ${op}: ${id}`]));
    expect(NOT_YET.filter((pair) => !pairs.has(pair))).to.deep.equal([]);
  });
}

/** The whole area, or this one row of it. */
function isNotYet(area: string, op: string, id: string): boolean {
  return NOT_YET.includes(`${area}: ${op}`) || NOT_YET.includes(`${area}: ${op}: ${id}`);
}

/** An error on purpose is an answer, but only to an example that expects one: with the field at fault, if it names one. */
async function answer(operation: Operation, example: Example): Promise<Result> {
  try {
    return await operation(example.given);
  } catch (error) {
    if (!expectsError(example)) throw error;
    if (error instanceof FarthingError)
      return { ...error.details, error_code: error.code, http_status: error.http_status_code };
    if (error instanceof ZodError)
      return { error_code: 'validation_error', http_status: 400, field: error.issues[0]?.path.join('.') };
    throw error;
  }
}

function expectsError({ expected }: Example): boolean {
  return 'error_code' in expected || Number(expected.http_status) >= 400;
}
