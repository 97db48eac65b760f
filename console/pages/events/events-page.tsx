import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function EventsPage(): ReactNode {
  return <PageHead title="EventsPage" />;
}
