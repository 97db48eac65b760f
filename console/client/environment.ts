/**
 * The environment of the page that is open. It is part of the name under which an answer is cached, because the same request has another
 * answer in another environment.
 */
import { hashKey, type QueryKey } from '@tanstack/react-query';

/** Null before sign-in. */
let environment_id: string | null = null;

export function setEnvironment(id: string | null): void {
  environment_id = id;
}

export function getEnvironment(): string | null {
  return environment_id;
}

/** Path of the queries that have one answer in all environments. */
const SESSION_PATHS = '/auth/';

export function isOfEnvironment([path]: QueryKey): boolean {
  return !(typeof path === 'string' && path.startsWith(SESSION_PATHS));
}

export function hashInEnvironment(key: QueryKey): string {
  return hashKey(isOfEnvironment(key) ? [environment_id, key] : key);
}
