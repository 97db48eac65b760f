/** The instant that counts in the environment: that of its test clock, else that of the machine, in milliseconds since 1970. */
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useGet } from '../../client/queries.ts';
import { useSession } from '../../client/session.ts';

export function useNow(): number {
  const { environment_id } = useParams({ from: '/env/$environment_id' });
  const { environments } = useSession();
  const [now_ms] = useState(() => Date.now());
  const id = environments.find((each) => each.id === environment_id)?.test_clock_id ?? '';
  const clock = useGet('/test-clocks/{id}', { path: { id } }, { enabled: id !== '' });
  return clock.data ? new Date(clock.data.frozen_time).getTime() : now_ms;
}
