import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function SubscriptionPage(): ReactNode {
  return <PageHead title="SubscriptionPage" />;
}
