/**
 * What each operation answered when the example of its request was sent: recorded while one story was told to a running
 * service, and told again by a test that compares every answer (test/api/http/examples.test.ts). A file per tag.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { Route } from './route.ts';

const FOLDER = new URL('../examples/', import.meta.url);

/** The file of a tag, `API keys` in api-keys.json. */
export const exampleFile = (tag: string): string => `${tag.toLowerCase().replaceAll(' ', '-')}.json`;

export type AnswerExamples = (route: Route) => unknown;

/** Reads each file once. */
export function readAnswerExamples(routes: readonly Route[]): AnswerExamples {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  const byTag = new Map(tags.map((tag) => [tag, examplesOf(tag)]));
  return ({ tag, operation_id }) => byTag.get(tag)?.[operation_id];
}

/** A route of a test has a tag that no file is of. */
function examplesOf(tag: string): Record<string, unknown> {
  const file = new URL(exampleFile(tag), FOLDER);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}
