/** The environment of the page, and requests to another one: the page of the first bill works in up to three. */
import { useParams } from '@tanstack/react-router';
import { ENVIRONMENT_HEADER } from '../../client/client.ts';
import { type SessionEnvironment, useSession } from '../../client/session.ts';

export function useEnvironment(): SessionEnvironment {
  const { environment_id } = useParams({ from: '/env/$environment_id' });
  return useSession().environments.find(({ id }) => id === environment_id)!;
}

/** Options of a request to another environment than that of the page. */
export function buildEnvironmentOptions(environment_id: string): { headers: Record<string, string> } {
  return { headers: { [ENVIRONMENT_HEADER]: environment_id } };
}
