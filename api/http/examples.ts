/**
 * What each operation was asked, and answered, when the example of its request was sent: recorded while one story was told to a running
 * service, and told again by a test that compares every answer (test/interface/examples.test.ts). Answers are in a file per tag; files that are
 * answered, addresses that were asked, and the calls of the published client that ask the same, in a file of each.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { Route } from './route.ts';

const FOLDER = new URL('../examples/', import.meta.url);

/** The file of a tag, `API keys` in api-keys.json. */
export const exampleFile = (tag: string): string => `${tag.toLowerCase().replaceAll(' ', '-')}.json`;

/** By operation. */
export const FILE_EXAMPLES = 'of-files.json';
export const PATH_EXAMPLES = 'of-paths.json';
export const CLIENT_EXAMPLES = 'of-the-client.json';

export type Example = {
  /** The JSON that was answered. */
  readonly answer?: unknown;
  /** The file that was answered; of a PDF its first line. */
  readonly file?: string;
  /** Where it was asked: the path relative to the base URL, with its query string. */
  readonly path?: string;
  /** What asks the same with the published client. */
  readonly call?: string;
};

/** Reads each file once. */
export function readExamples(routes: readonly Route[]): (route: Route) => Example {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  const byTag = new Map(tags.map((tag) => [tag, examplesIn(exampleFile(tag))]));
  const files = examplesIn<string>(FILE_EXAMPLES);
  const paths = examplesIn<string>(PATH_EXAMPLES);
  const calls = examplesIn<string>(CLIENT_EXAMPLES);
  return ({ tag, operation_id: id }) => ({
    answer: byTag.get(tag)?.[id],
    file: files[id],
    path: paths[id],
    call: calls[id],
  });
}

/** A route of a test has a tag that no file is of. */
function examplesIn<Value = unknown>(name: string): Record<string, Value> {
  const file = new URL(name, FOLDER);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}
