/** The messages at the edge of the page. Their scripts are loaded after the first page is shown; a message waits for them. */
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react';

const Notifications = lazy(async () => ({ default: (await import('@mantine/notifications')).Notifications }));

export function LaterNotifications(): ReactNode {
  const [isOn, setOn] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setOn(true), AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return <Suspense>{isOn && <Notifications position="bottom-right" />}</Suspense>;
}

const AFTER_MS = 1_000;
