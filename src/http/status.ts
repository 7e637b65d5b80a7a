/** The service's state, as health tells it. SOURCE: decisions, "HTTP". */
export type ServiceStatus = 'starting' | 'ok' | 'locked' | 'stopping' | 'failing';
