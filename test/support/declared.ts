/** Compares every answer of a tested service with what its OpenAPI document declares for the operation. */
import { listContentTypes, listErrorStatuses } from '../../api/http/declared-answers.ts';
import type { Route } from '../../api/http/route.ts';
import { RouteTable } from '../../api/http/route-table.ts';

type Answered = {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly type: string | null;
};

/** Statuses that say that a path has no such operation. */
const NO_OPERATION = [405];

/** Returns a check that throws if an answer of these routes is not declared. */
export function buildDeclaredCheck(routes: readonly Route[]): (answered: Answered) => void {
  const table = new RouteTable(routes);
  return ({ method, path, status, type }) => {
    if (!path.startsWith('/v1/') || method === 'OPTIONS' || NO_OPERATION.includes(status)) return;
    const route = findRoute(table, method, path.slice('/v1'.length).split('?')[0]!);
    if (route === undefined) return;
    const name = `${method} ${route.path} (${route.operation_id})`;
    if (status >= 400) {
      if (!listErrorStatuses(route).includes(String(status))) throw new Error(`${name} does not declare ${status}`);
      return;
    }
    if (status === 304 && route.file_type === 'application/pdf') return;
    if (status !== route.success && status !== route.other_success)
      throw new Error(`${name} does not declare ${status}`);
    const types = listContentTypes(route);
    const media = type?.split(';')[0] ?? '';
    if (types.length > 0 && !types.includes(media)) throw new Error(`${name} does not declare ${media}`);
  };
}

function findRoute(table: RouteTable<Route>, method: string, path: string): Route | undefined {
  try {
    return table.find(method, path)?.route;
  } catch {
    // The path is not correctly encoded, so it is that of no operation.
    return undefined;
  }
}
