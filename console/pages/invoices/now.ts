/**
 * The instant that counts in the environment: that of its test clock, else that of the machine, in milliseconds since 1970. With
 * `tick_ms` the clock of the machine is read again at that interval.
 */
import { useParams } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useGet } from '../../client/queries.ts';
import { useSession } from '../../client/session.ts';

export function useNow(tick_ms?: number): number {
  const { environment_id } = useParams({ from: '/env/$environment_id' });
  const { environments } = useSession();
  const [now_ms, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (tick_ms === undefined) return undefined;
    const timer = setInterval(() => setNow(Date.now()), tick_ms);
    return () => clearInterval(timer);
  }, [tick_ms]);
  const id = environments.find((each) => each.id === environment_id)?.test_clock_id ?? '';
  const clock = useGet('/test-clocks/{id}', { path: { id } }, { enabled: id !== '' });
  return clock.data ? new Date(clock.data.frozen_time).getTime() : now_ms;
}
