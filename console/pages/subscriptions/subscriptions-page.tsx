import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function SubscriptionsPage(): ReactNode {
  return <PageHead title="SubscriptionsPage" />;
}
