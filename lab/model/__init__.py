"""Pure models of the HPA controller, of KEDA and of the persistent-lag window: state and readings in, decisions out."""
