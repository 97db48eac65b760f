/**
 * Recorded request and answer examples of each operation. They come from one sequence of requests to a service;
 * test/interface/examples.test.ts repeats it and compares every answer. Answers are in one file per tag. Examples of file downloads,
 * request paths and calls of the published client are in the three files below.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { Route } from './route.ts';

const FOLDER = new URL('../examples/', import.meta.url);

/** Returns the file name of a tag: `API keys` is in api-keys.json. */
export const exampleFile = (tag: string): string => `${tag.toLowerCase().replaceAll(' ', '-')}.json`;

/** Files of examples that are keyed by operation id. */
export const FILE_EXAMPLES = 'of-files.json';
export const PATH_EXAMPLES = 'of-paths.json';
export const CLIENT_EXAMPLES = 'of-the-client.json';

export type Example = {
  /** JSON body of the answer. */
  readonly answer?: unknown;
  /** Body of a file answer; for a PDF its first line. */
  readonly file?: string;
  /** Request path relative to the base URL, with the query string. */
  readonly path?: string;
  /** Equivalent call of the published client. */
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

/** Reads a file of examples. The result is empty if there is no such file: tags of test routes have none. */
function examplesIn<Value = unknown>(name: string): Record<string, Value> {
  const file = new URL(name, FOLDER);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}
