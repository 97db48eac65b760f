import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function PlanPage(): ReactNode {
  return <PageHead title="PlanPage" />;
}
